package config

import "runtime/debug"

// Version is the release that this binary was built from, set by
// -ldflags "-X github.com/palisade/palisade/services/config.Version=v1.2.3". Empty in a plain `go build`.
var Version string

// Build describes the build of this binary.
type Build struct {
	Version  string // Version, or the module version, or "devel"
	Revision string // commit, with "+dirty" when the tree had changes; empty when unknown
	Time     string // time of that commit, RFC 3339; empty when unknown
	Go       string // toolchain, for example go1.26.8
}

// BuildVersion returns [Version] and what the Go toolchain recorded in the binary.
func BuildVersion() Build {
	b := Build{Version: Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Go = info.GoVersion
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		dirty := ""
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.time":
				b.Time = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					dirty = "+dirty"
				}
			}
		}
		if b.Revision != "" {
			b.Revision += dirty
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}
