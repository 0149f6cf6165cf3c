//go:build tools

// Package tools names the programs, so that `go mod tidy` keeps go.mod and go.sum complete for them.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
