//go:build tools

// Package tools names the program, so that `go mod tidy` keeps go.mod and go.sum complete for it.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
