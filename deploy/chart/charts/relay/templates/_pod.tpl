{{- /* The least of the ports that the program listens at; below 1024 only for whom the pod's network lets in. */ -}}
{{- define "relay.lowestPort" -}}
{{- min (int .Values.service.port) (int .Values.links.port) (int .Values.healthPort) -}}
{{- end -}}

{{- /* Drain and a little: after it the kubelet kills, and all clients that are left lose their connection at once. */ -}}
{{- define "relay.graceSeconds" -}}
{{- $time := toString .Values.drainTime -}}
{{- $number := int64 (regexFind "^[0-9]+" $time) -}}
{{- $ms := ternary $number (mul $number (ternary 60000 1000 (hasSuffix "m" $time))) (hasSuffix "ms" $time) -}}
{{- max 60 (add 10 (div (add $ms 999) 1000)) -}}
{{- end -}}
