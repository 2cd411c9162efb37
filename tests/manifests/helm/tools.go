// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Keeps helm in go.mod.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
