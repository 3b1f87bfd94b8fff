//go:build ignore

package samples

import "os"

func files(name string) {
	// ruleid: palisade.go.world-writable
	os.Chmod(name, 0o666)
	// ruleid: palisade.go.world-writable
	os.Chmod(name, 0777)
	// ok: palisade.go.world-writable
	os.Chmod(name, 0o640)
	// ok: palisade.go.world-writable
	os.MkdirAll(name, 0777)
	// ok: palisade.go.world-writable
	os.WriteFile(name, nil, 0o666)
	// ok: palisade.go.world-writable
	os.Chmod(name, 01777)
}
