{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* (dict "root" $ "name" "vesper-agent"): labels of what belongs to it. */}}
{{- define "vesper.labels" -}}
{{ include "vesper.podLabels" . }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "vesper.podLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/part-of: vesper
{{- end }}

{{/* (dict "root" $ "image" .Values.agent.image): where that image lies. */}}
{{- define "vesper.image" -}}
{{- $all := .root.Values.image -}}
{{- with $all.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ $all.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* {Section: {Key: value}} as the file that the daemons read. */}}
{{- define "vesper.conf" -}}
{{- range $section, $keys := . }}
[{{ $section }}]
{{- range $key, $value := $keys }}
{{ $key }}={{ $value }}
{{- end }}
{{ end }}
{{- end }}

{{/* The rules of the one object of that kind in a file, where their reasons stand: (dict "root" $ "kind" "Role" "file" "files/rbac.yaml"). */}}
{{- define "vesper.rules" -}}
{{- $found := dict -}}
{{- $kind := .kind -}}
{{- range splitList "\n---\n" (.root.Files.Get .file) -}}
{{- $object := fromYaml . -}}
{{- if eq ($object.kind | default "") $kind }}{{ $_ := set $found "rules" $object.rules }}{{ end -}}
{{- end -}}
{{- toYaml (required (printf "%s is not in this copy of the chart, where it may be a link to a file of packaging/manifests/coordinator" .file) $found.rules) | replace "vesper-system" .root.Release.Namespace }}
{{- end }}

{{/* The volumes of the kubelet's credential: name, path, directory. As the overlays packaging/manifests/agent-*. */}}
{{- define "vesper.credential" -}}
{{- $agent := .Values.agent -}}
{{- if eq $agent.distribution "kubeadm" }}
- {name: kubeconfig, path: /etc/kubernetes/kubelet.conf}
- {name: kubelet-pki, path: /var/lib/kubelet/pki, directory: true}
{{- else if eq $agent.distribution "aks" }}
- {name: kubeconfig, path: /var/lib/kubelet/kubeconfig}
- {name: kubelet-pki, path: /var/lib/kubelet/pki, directory: true}
- {name: cluster-ca, path: /etc/kubernetes/certs/ca.crt}
{{- else if eq $agent.distribution "other" }}
{{- if not $agent.credential }}{{ fail "agent.distribution=other needs agent.credential: the files that make up the kubelet's credential" }}{{ end }}
{{- range $i, $file := $agent.credential }}
- {name: credential-{{ $i }}, path: {{ $file.path | quote }}, directory: {{ $file.directory | default false }}}
{{- end }}
{{- else }}
{{- $folder := printf "/var/lib/rancher/%s/agent" $agent.distribution }}
- {name: kubeconfig, path: {{ $folder }}/kubelet.kubeconfig}
- {name: server-ca, path: {{ $folder }}/server-ca.crt}
- {name: kubelet-crt, path: {{ $folder }}/client-kubelet.crt}
- {name: kubelet-key, path: {{ $folder }}/client-kubelet.key}
{{- end }}
{{- end }}

{{/* The port of ADDRESS:PORT. */}}
{{- define "vesper.port" -}}
{{ regexFind "[0-9]+$" . }}
{{- end }}

{{/* Annotations of what stands only while an uninstallation begins; the argument is the weight: what has less is made before. */}}
{{- define "vesper.hook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
