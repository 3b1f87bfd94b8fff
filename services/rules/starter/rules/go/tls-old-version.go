//go:build ignore

package samples

import "crypto/tls"

func versions(version uint16) {
	// ruleid: palisade.go.tls-old-version
	_ = &tls.Config{MinVersion: tls.VersionTLS10}
	// ruleid: palisade.go.tls-old-version
	_ = &tls.Config{ServerName: "db.acme.test", MinVersion: tls.VersionTLS11}
	// ok: palisade.go.tls-old-version
	_ = &tls.Config{MinVersion: tls.VersionTLS13}
	// ok: palisade.go.tls-old-version
	_ = version == tls.VersionTLS10
	// ok: palisade.go.tls-old-version
	_ = &tls.Config{MinVersion: version}
}
