//go:build programs

// Package helm names what is built here from the modules of go.mod: Helm, which renders and installs deploy/chart.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
