// Command helm4 answers cases with the engine of Helm 4.1.4.
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"opdev.local/batch"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1/util"
)

func main() {
	batch.Main(batch.Helm{Render: render, Yaml: read, Sort: sorted})
}

func render(question batch.Case) (map[string]string, error) {
	values, err := common.ReadValues([]byte(question.Values))
	if err != nil {
		return nil, err
	}
	probe := &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: "v2", Name: "probe", Version: "0.1.0"},
		Values:   values,
	}
	for name, text := range question.Files {
		probe.Templates = append(probe.Templates, &common.File{Name: name, Data: []byte(text)})
	}
	options := common.ReleaseOptions{Name: "release-name", Namespace: "default", Revision: 1, IsInstall: true}
	top, err := util.ToRenderValues(probe, map[string]interface{}{}, options, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(probe, top)
}

func read(text string) map[string]string {
	answers := map[string]string{}
	say := func(question, answer string, err error) {
		if err != nil {
			answer = "error: " + err.Error()
		}
		answers[question] = answer
	}
	guarded := func(question string, ask func() (string, error)) {
		defer func() {
			if r := recover(); r != nil {
				say(question, "", fmt.Errorf("panic: %v", r))
			}
		}()
		answer, err := ask()
		say(question, answer, err)
	}
	guarded("json", func() (string, error) {
		data, err := yaml.YAMLToJSON([]byte(text))
		return string(data), err
	})
	guarded("values", func() (string, error) {
		loaded, err := loader.LoadFiles([]*archive.BufferedFile{
			{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: probe\nversion: 0.1.0\n")},
			{Name: "values.yaml", Data: []byte(text)},
		})
		if err != nil {
			return "", err
		}
		data, err := json.Marshal(loaded.Values)
		return string(data), err
	})
	guarded("yaml", func() (string, error) {
		var value interface{}
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return "", err
		}
		data, err := yaml.Marshal(value)
		return string(data), err
	})
	return answers
}

func sorted(text string) (string, error) {
	hooks, manifests, err := release.SortManifests(map[string]string{"probe/templates/x.yaml": text}, nil, release.InstallOrder)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, m := range manifests {
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	for _, h := range hooks {
		fmt.Fprintf(&out, "---\n# Hook: %s %d %v\n%s\n", h.Name, h.Weight, h.Events, h.Manifest)
	}
	return out.String(), nil
}
