//go:build ignore

package samples

import "crypto/tls"

func connect(config *tls.Config, insecure bool) {
	// ruleid: palisade.go.tls-verification-off
	_ = &tls.Config{ServerName: "db.acme.test", InsecureSkipVerify: true}
	// ruleid: palisade.go.tls-verification-off
	config.InsecureSkipVerify = true
	// ok: palisade.go.tls-verification-off
	_ = &tls.Config{ServerName: "db.acme.test"}
	// ok: palisade.go.tls-verification-off
	config.InsecureSkipVerify = insecure
	// ok: palisade.go.tls-verification-off
	_ = &tls.Config{InsecureSkipVerify: false}
}
