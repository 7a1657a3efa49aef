package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Flags of a field, as src/controlplane/apimachinery/protobuf reads them.
const (
	kept     = 1 // zero is written in JSON too
	repeated = 2
	mapped   = 4
	pointer  = 8 // there may be none of it on the wire
)

type field [4]any // number, JSON name, type, flags

// table is what one asset holds: kinds by "group/version kind", messages by definition.
type table struct {
	Kinds    map[string]string  `json:"kinds,omitempty"`
	Messages map[string][]field `json:"messages"`
}

// messages writes the two tables of protobuf messages into the assets of the package apimachinery: what the served kinds need, and
// what all the other kinds of k8s.io/api need besides.
func messages(src string) error {
	served, err := servedKinds(filepath.Join(src, "object", "assets", "schemas.tsv.gz"))
	if err != nil {
		return err
	}
	first, other := map[string][]field{}, table{Kinds: map[string]string{}, Messages: map[string][]field{}}
	for _, answer := range []any{metav1.Status{}, metav1.PartialObjectMetadata{}} {
		if _, err := message(reflect.TypeOf(answer), first, nil); err != nil {
			return err
		}
	}
	all := everyKind()
	for kind, of := range all {
		if served[kind] && !strings.HasSuffix(kind.Kind, "List") {
			if _, err := message(of, first, nil); err != nil {
				return err
			}
		}
	}
	for kind, of := range all {
		if served[kind] || strings.HasSuffix(kind.Kind, "List") || kind.Version == runtime.APIVersionInternal {
			continue
		}
		name, err := message(of, other.Messages, first)
		if err != nil {
			return err
		}
		other.Kinds[kind.GroupVersion().String()+" "+kind.Kind] = name
	}
	if err := write(filepath.Join(src, "controlplane", "apimachinery", "assets", "protobuf.json.gz"), first); err != nil {
		return err
	}
	return write(filepath.Join(src, "controlplane", "apimachinery", "assets", "protobuf-unserved.json.gz"), other)
}

// everyKind is each kind that the modules know, with its type. Options of requests are known to every group: one is enough.
func everyKind() map[schema.GroupVersionKind]reflect.Type {
	scheme := runtime.NewScheme()
	builders := []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, admissionv1.AddToScheme, admissionv1beta1.AddToScheme,
		apidiscoveryv2.AddToScheme, apidiscoveryv2beta1.AddToScheme, imagepolicyv1alpha1.AddToScheme,
		apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
	}
	for _, add := range builders {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	kinds := scheme.AllKnownTypes()
	for kind, of := range kinds {
		if of.PkgPath() == reflect.TypeOf(metav1.Status{}).PkgPath() && kind.GroupVersion().String() != "v1" {
			delete(kinds, kind)
		}
	}
	return kinds
}

// inflate reads a compressed file.
func inflate(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// servedKinds are those that the table of schemas has.
func servedKinds(path string) (map[schema.GroupVersionKind]bool, error) {
	text, err := inflate(path)
	if err != nil {
		return nil, err
	}
	served := map[schema.GroupVersionKind]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		columns := strings.SplitN(line, "\t", 3)
		if len(columns) < 3 {
			continue
		}
		for _, kind := range strings.Fields(columns[1]) {
			if part := strings.Split(kind, "/"); len(part) == 3 {
				served[schema.GroupVersionKind{Group: part[0], Version: part[1], Kind: part[2]}] = true
			}
		}
	}
	return served, nil
}

// definition is the name that OpenAPI documents give a type.
func definition(of reflect.Type) string {
	path := strings.ReplaceAll(strings.TrimPrefix(of.PkgPath(), "k8s.io/"), "/", ".")
	return "io.k8s." + path + "." + of.Name()
}

// special are the messages whose JSON is no object of their fields.
var special = map[string]bool{
	"io.k8s.apimachinery.pkg.api.resource.Quantity":                                         true,
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString":                                       true,
	"io.k8s.apimachinery.pkg.runtime.RawExtension":                                          true,
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time":                                             true,
	"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":                                        true,
	"io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1":                                         true,
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON":                         true,
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray":       true,
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool":        true,
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": true,
}

// message notes the fields of a type and of all that it holds, unless one of the tables has them.
func message(of reflect.Type, into, known map[string][]field) (string, error) {
	name := definition(of)
	if _, is := into[name]; is || special[name] || known[name] != nil {
		return name, nil
	}
	if of.Kind() == reflect.Slice {
		into[name] = []field{{1, "*", "s", repeated}}
		return name, nil
	}
	into[name] = []field{}
	fields := []field{}
	for at := range of.NumField() {
		member := of.Field(at)
		tag := member.Tag.Get("protobuf")
		if tag == "" {
			continue
		}
		number, err := strconv.Atoi(strings.Split(tag, ",")[1])
		if err != nil {
			return "", fmt.Errorf("%s.%s: %w", name, member.Name, err)
		}
		json := strings.Split(member.Tag.Get("json"), ",")
		kind, flags, err := kindOf(member.Type, into, known)
		if err != nil {
			return "", fmt.Errorf("%s.%s: %w", name, member.Name, err)
		}
		omitted := false
		for _, option := range json[1:] {
			omitted = omitted || option == "omitempty" || option == "omitzero"
		}
		if flags == pointer || (!omitted && flags == 0) {
			flags |= kept
		}
		if json[0] == "-" {
			continue
		}
		fields = append(fields, field{number, json[0], kind, flags})
	}
	slices.SortFunc(fields, func(a, b field) int { return a[0].(int) - b[0].(int) })
	into[name] = fields
	return name, nil
}

// kindOf is how a Go type goes over the wire.
func kindOf(of reflect.Type, into, known map[string][]field) (string, int, error) {
	_, marshals := reflect.PointerTo(of).MethodByName("Marshal")
	switch of.Kind() {
	case reflect.String:
		return "s", 0, nil
	case reflect.Bool:
		return "b", 0, nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "i", 0, nil
	case reflect.Float64:
		return "d", 0, nil
	case reflect.Struct:
		name, err := message(of, into, known)
		return name, 0, err
	case reflect.Pointer:
		return inner(of, pointer, into, known)
	case reflect.Map:
		return inner(of, mapped, into, known)
	case reflect.Slice:
		if marshals {
			name, err := message(of, into, known)
			return name, 0, err
		}
		if of.Elem().Kind() == reflect.Uint8 {
			return "y", 0, nil
		}
		return inner(of, repeated, into, known)
	default:
		return "", 0, fmt.Errorf("%s has no form on the wire", of)
	}
}

// inner is the kind of what a pointer, map or list holds, which is none of them itself.
func inner(of reflect.Type, flag int, into, known map[string][]field) (string, int, error) {
	kind, flags, err := kindOf(of.Elem(), into, known)
	if err == nil && flags != 0 {
		err = fmt.Errorf("%s has no form on the wire", of)
	}
	return kind, flag, err
}

// write packs a table as the other assets are: minified, sorted keys, gzip without a date.
func write(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	packer, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := packer.Write(text); err != nil {
		return err
	}
	if err := packer.Close(); err != nil {
		return err
	}
	return file.Close()
}
