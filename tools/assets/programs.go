//go:build programs

// Package programs names what is built as others have written it, so that go.mod pins it: Helm, which renders and installs
// deploy/chart; the Kubernetes end-to-end suite (its test binary), the runner that spreads its specs over processes, and the
// program that the suite's pods run.
package programs

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "helm.sh/helm/v3/cmd/helm"
	_ "k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/images/agnhost"
)
