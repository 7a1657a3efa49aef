package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// kinds prints what the real serializer makes of two objects of every kind: one in which everything is set, and one in
// which all messages are there and none has a value. src/controlplane/apimachinery/protobuf/tests/kinds.rs builds the same objects.
func kinds(src string) error {
	known, err := tables(src)
	if err != nil {
		return err
	}
	all := everyKind()
	scheme := runtime.NewScheme()
	var order []schema.GroupVersionKind
	for kind, of := range all {
		if strings.HasSuffix(kind.Kind, "List") || kind.Version == runtime.APIVersionInternal {
			continue
		}
		scheme.AddKnownTypeWithName(kind, reflect.New(of).Interface().(runtime.Object))
		order = append(order, kind)
	}
	sort.Slice(order, func(a, b int) bool { return order[a].String() < order[b].String() })
	for _, kind := range order {
		line := []string{kind.GroupVersion().String(), kind.Kind}
		for _, full := range []bool{true, false} {
			given := build(known, definition(all[kind]), full, "", nil).(map[string]any)
			// The event of a watch is of no kind.
			if _, has := all[kind].FieldByName("TypeMeta"); has {
				given["apiVersion"], given["kind"] = kind.GroupVersion().String(), kind.Kind
			}
			message, read, err := through(scheme, all[kind], given)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			line = append(line, hash(message))
			if full && !reflect.DeepEqual(plain(given), read) {
				return fmt.Errorf("%s: %v is read as %v", kind, plain(given), read)
			}
			if !full {
				text, err := json.Marshal(read)
				if err != nil {
					return err
				}
				line = append(line, hash(text))
			}
		}
		fmt.Println(strings.Join(line, " "))
	}
	return nil
}

// tables are the messages of both assets.
func tables(src string) (map[string][]field, error) {
	var first map[string][]field
	var other table
	for name, into := range map[string]any{"protobuf.json.gz": &first, "protobuf-unserved.json.gz": &other} {
		text, err := inflate(filepath.Join(src, "controlplane", "apimachinery", "assets", name))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return nil, err
		}
	}
	for name, fields := range other.Messages {
		first[name] = fields
	}
	return first, nil
}

// values are what stands in a full object for messages whose JSON is no object of their fields, by the ends of their names.
var values = map[string]any{
	".Quantity": "1500m", ".IntOrString": "http", ".RawExtension": map[string]any{"of": "json"},
	".Time": "2026-01-01T00:00:00Z", ".MicroTime": "2026-01-01T00:00:00.000001Z",
	".FieldsV1": map[string]any{"of": "json"}, ".JSON": map[string]any{"of": "json"},
	".JSONSchemaPropsOrArray": map[string]any{"type": "string"}, ".JSONSchemaPropsOrBool": true,
	".JSONSchemaPropsOrStringArray": []any{"item"},
}

// build makes an object of a definition; nil where nothing is to be written. Around are the definitions that it is in.
func build(known map[string][]field, name string, full bool, of string, around []string) any {
	switch name {
	case "s", "b", "i", "d", "y":
		if !full {
			return nil
		}
		return map[string]any{"s": of + "Value", "b": true, "i": 7, "d": 1.5, "y": "Ynl0ZXM="}[name]
	}
	if special[name] {
		if !full {
			return nil
		}
		return values[name[strings.LastIndex(name, "."):]]
	}
	for _, outer := range around {
		if outer == name {
			return nil
		}
	}
	around = append(around[:len(around):len(around)], name)
	object := map[string]any{}
	for _, member := range known[name] {
		json, flags := member[1].(string), int(member[3].(float64))
		value := build(known, member[2].(string), full, json, around)
		switch {
		case value == nil:
		case json == "*" && full:
			return []any{value}
		case json == "":
			for key, inner := range value.(map[string]any) {
				object[key] = inner
			}
		case flags&mapped != 0:
			object[json] = map[string]any{"key": value}
		case flags&repeated != 0:
			object[json] = []any{value}
		default:
			object[json] = value
		}
	}
	if fields := known[name]; len(fields) == 1 && fields[0][1] == "*" {
		return []any{}
	}
	return object
}

// through reads an object into its Go type and writes it as a message and as JSON without nulls.
func through(scheme *runtime.Scheme, of reflect.Type, given map[string]any) ([]byte, any, error) {
	text, err := json.Marshal(given)
	if err != nil {
		return nil, nil, err
	}
	object := reflect.New(of).Interface().(runtime.Object)
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(object); err != nil {
		return nil, nil, err
	}
	var message bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(object, &message); err != nil {
		return nil, nil, err
	}
	return message.Bytes(), plain(object), nil
}

// plain is a value as JSON says it, without nulls.
func plain(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var read any
	if err := json.Unmarshal(text, &read); err != nil {
		panic(err)
	}
	return withoutNulls(read)
}

func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if inner == nil {
				delete(value, key)
			} else {
				value[key] = withoutNulls(inner)
			}
		}
	case []any:
		for at := range value {
			value[at] = withoutNulls(value[at])
		}
	}
	return value
}

// hash is the beginning of a digest: enough to tell two texts apart.
func hash(text []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}
