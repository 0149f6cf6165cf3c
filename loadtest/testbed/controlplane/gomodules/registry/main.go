// A registry for OCI artifacts on loopback: distribution's own, with files as the only storage.
// Its usual program links the clients of three clouds, which takes most of the time to build it.
package main

import (
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

func main() {
	if err := registry.RootCmd.Execute(); err != nil {
		os.Exit(1)
	}
}
