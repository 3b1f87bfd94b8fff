package services

import (
	"runtime"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/server"
)

// checkPermissions finds files that give other users of this machine access to the server's data. It skips the key
// file, which checkKey covers.
func checkPermissions(cfg config.Config) []Check {
	const fine = "file permissions"
	if runtime.GOOS == "windows" {
		return []Check{passed(fine, "not looked at on Windows")}
	}
	var found []Check
	for _, e := range server.Exposures(cfg) {
		found = append(found, failed(e.Name, e.Detail, e.Fix))
	}
	if len(found) == 0 {
		return []Check{passed(fine, "the data directory and the TLS key are closed to others")}
	}
	return found
}
