//go:build ignore

package samples

import "crypto/tls"

func suites() {
	// ruleid: palisade.go.tls-weak-cipher-suite
	_ = &tls.Config{CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}}
	// ruleid: palisade.go.tls-weak-cipher-suite
	_ = &tls.Config{CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA}}
	// ok: palisade.go.tls-weak-cipher-suite
	_ = &tls.Config{CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}
	refused := map[uint16]bool{
		// ok: palisade.go.tls-weak-cipher-suite
		tls.TLS_RSA_WITH_RC4_128_SHA: true,
	}
	// ok: palisade.go.tls-weak-cipher-suite
	_ = &tls.Config{MinVersion: tls.VersionTLS13}
	_ = refused
}
