{{- define "shared" }}from the parent{{ end -}}
{{- define "labels" -}}
chart: {{ .Chart.Name }}-{{ .Chart.Version }}
root: {{ .Chart.IsRoot }}
tier: {{ .Values.global.labels.tier }}
template: {{ .Template.Name }}
{{- end }}
