{{/* How pods are replaced. */}}

{{/*
How a Deployment or a DaemonSet replaces its pods. Called with (list scope DEFAULT), DEFAULT being what counts where the values, those of an
installation of before, say nothing. Kubernetes refuses rollingUpdate beside another type.
*/}}
{{- define "unbounded.updateStrategy" -}}
{{- $given := (index . 0).Values.updateStrategy | default (index . 1) -}}
{{- $isRolling := eq ($given.type | default "RollingUpdate") "RollingUpdate" -}}
{{- $strategy := ternary $given (omit $given "rollingUpdate") $isRolling -}}
{{ toYaml $strategy }}
{{- end }}

{{/* The same of an agent, of which maxUnavailable is a value of its own. */}}
{{- define "unbounded.updateByNode" -}}
{{- $type := (.Values.updateStrategy).type | default "RollingUpdate" -}}
type: {{ $type }}
{{- if eq $type "RollingUpdate" }}
rollingUpdate: { maxUnavailable: {{ .Values.maxUnavailable }} }
{{- end }}
{{- end }}
