//go:build ignore

package samples

import "os"

func dump(data []byte) {
	// ruleid: palisade.go.predictable-temp-file
	os.WriteFile("/tmp/acme-dump.json", data, 0o600)
	// ruleid: palisade.go.predictable-temp-file
	os.Create("/var/tmp/acme.lock")
	// ok: palisade.go.predictable-temp-file
	os.CreateTemp("", "acme-*.json")
	// ok: palisade.go.predictable-temp-file
	os.WriteFile("/srv/acme/dump.json", data, 0o600)
	// ok: palisade.go.predictable-temp-file
	os.ReadFile("/tmp/acme-dump.json")
}
