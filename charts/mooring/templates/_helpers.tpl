{{- define "mooring.labels" -}}
app.kubernetes.io/part-of: mooring
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "mooring.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .version }}
{{- end }}
{{- end }}

{{- /*
What the harness is known by, as YAML with base64 inside: names, tls.crt, tls.key, ca.crt, token.key. Made once for a
release: what the cluster has is kept, but for the certificate of other names. Somebody else's Secret gives ca.crt alone.
*/}}
{{- define "mooring.harness.tls" -}}
{{- $tls := .Values.harness.tls }}
{{- if and $tls.existingSecret (not $tls.caBundle) }}
{{- fail "harness.tls.existingSecret needs harness.tls.caBundle: the PEM of the authority that signed its tls.crt, which the API server is told to trust" }}
{{- else if and $tls.caBundle (not $tls.existingSecret) }}
{{- fail "harness.tls.caBundle belongs to harness.tls.existingSecret: the chart's own Secret comes with its own authority" }}
{{- else if $tls.existingSecret }}
{{- dict "ca.crt" ($tls.caBundle | b64enc) | toYaml }}
{{- else }}
{{- if not (hasKey .Values.harness "made") }}
{{- $_ := set .Values.harness "made" (include "mooring.harness.made" . | fromYaml) }}
{{- end }}
{{- .Values.harness.made | toYaml }}
{{- end }}
{{- end }}

{{- define "mooring.harness.made" -}}
{{- $service := printf "mooring-harness.%s.svc" .Release.Namespace }}
{{- $names := concat (list $service (printf "%s.cluster.local" $service)) .Values.harness.gateway.hostnames | uniq }}
{{- $listed := join "," $names }}
{{- $there := lookup "v1" "Secret" .Release.Namespace "mooring-harness-tls" }}
{{- $data := dig "data" dict $there }}
{{- $kept := dict "names" $listed "token.key" (dig "token.key" "" $data | default (randBytes 32)) }}
{{- $is_same := eq (dig "metadata" "annotations" "mooring.dev/certificate-names" "" $there) $listed }}
{{- if and $is_same (hasKey $data "tls.crt") (hasKey $data "tls.key") (hasKey $data "ca.crt") }}
{{- $_ := merge $kept (pick $data "tls.crt" "tls.key" "ca.crt") }}
{{- else }}
{{- $authority := genCAWithKey "mooring-harness" 3650 (genPrivateKey "ecdsa") }}
{{- $certificate := genSignedCertWithKey $service nil $names 3650 $authority (genPrivateKey "ecdsa") }}
{{- $_ := set $kept "tls.crt" ($certificate.Cert | b64enc) }}
{{- $_ := set $kept "tls.key" ($certificate.Key | b64enc) }}
{{- $_ := set $kept "ca.crt" ($authority.Cert | b64enc) }}
{{- end }}
{{- toYaml $kept }}
{{- end }}
