//go:build programs

// Package e2e names what is built here from the modules of go.mod: the Kubernetes end-to-end suite (its test binary),
// the runner that spreads its specs over processes, and the program that the suite's pods run.
package e2e

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/images/agnhost"
)
