package services

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// checkPermissions looks for files with which other users of this machine get at what the server keeps. The key file is not
// among them: a server does not start with one that others can read, and checkKey says so.
func checkPermissions(cfg Config) []Check {
	const fine = "file permissions"
	if runtime.GOOS == "windows" {
		return []Check{passed(fine, "not looked at on Windows")}
	}
	var found []Check
	if mode, ok := modeOf(cfg.Data); ok && mode&0o022 != 0 {
		found = append(found, failed("permissions of the data directory",
			fmt.Sprintf("%s can be changed by others than its owner (mode %04o): they can replace the database and the key", cfg.Data, mode),
			fmt.Sprintf("run: chmod 700 %s", cfg.Data)))
	}
	if mode, ok := modeOf(cfg.TLSKey); ok && mode&0o077 != 0 {
		found = append(found, failed("permissions of the TLS key",
			fmt.Sprintf("%s can be read or changed by others than its owner (mode %04o): they can pretend to be this server", cfg.TLSKey, mode),
			fmt.Sprintf("run: chmod 600 %s, as the user that the server runs as; and renew the certificate if others may have read it", cfg.TLSKey)))
	}
	if len(found) == 0 {
		return []Check{passed(fine, "the data directory and the TLS key are closed to others")}
	}
	return found
}

// modeOf is false for what is not configured or cannot be looked at, which other checks report.
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

// warnOfPermissions says at the start what the doctor would find.
func (s *Server) warnOfPermissions() {
	for _, c := range checkPermissions(s.config) {
		if !c.OK {
			s.log.Warn(c.Name+": "+c.Detail, "fix", c.Fix)
		}
	}
}
