//go:build ignore

package samples

import (
	// ruleid: palisade.go.pprof-exposed
	_ "net/http/pprof"
	// ok: palisade.go.pprof-exposed
	"net/http"
	// ok: palisade.go.pprof-exposed
	"runtime/pprof"
)

var _, _ = http.DefaultServeMux, pprof.Profiles
