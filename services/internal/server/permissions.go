package server

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/store"
)

// Exposure is a file that gives other users of this machine access to the server's data.
type Exposure struct {
	Name, Detail string
	Fix          string // what to do
}

// Exposures finds such files. It skips the key file, because a server does not start with one that others can read.
func Exposures(cfg config.Config) []Exposure {
	if runtime.GOOS == "windows" {
		return nil
	}
	var found []Exposure
	if mode, ok := modeOf(cfg.Data); ok && mode&0o022 != 0 {
		found = append(found, Exposure{"permissions of the data directory",
			fmt.Sprintf("%s can be changed by others than its owner (mode %04o): they can replace the database and the key", cfg.Data, mode),
			fmt.Sprintf("run: chmod 700 %s", cfg.Data)})
	}
	if mode, ok := modeOf(cfg.TLSKey); ok && mode&0o077 != 0 {
		found = append(found, Exposure{"permissions of the TLS key",
			fmt.Sprintf("%s can be read or changed by others than its owner (mode %04o): they can pretend to be this server", cfg.TLSKey, mode),
			fmt.Sprintf("run: chmod 600 %s, as the user that the server runs as; and renew the certificate if others may have read it", cfg.TLSKey)})
	}
	return found
}

// modeOf returns false for a path that is not configured or cannot be read. Other checks report these.
func modeOf(path string) (fs.FileMode, bool) {
	if path == "" {
		return 0, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode().Perm(), true
}

// warnOfPermissions logs at start what the doctor would find.
func (s *Server) warnOfPermissions() {
	for _, e := range Exposures(s.config) {
		s.log.Warn(e.Name+": "+e.Detail, "fix", e.Fix)
	}
}

// warnOfBuild does the same for the build options of the embedded SQLite.
func (s *Server) warnOfBuild(ctx context.Context, st *store.Store) {
	if knows, err := st.KnowsFrequentValues(ctx); err != nil || !knows {
		s.log.Warn(store.WithoutBuildTag, "fix", store.WithBuildTag, "error", err)
	}
}
