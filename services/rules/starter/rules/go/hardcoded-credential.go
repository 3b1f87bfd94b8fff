//go:build ignore

package samples

import "os"

// ruleid: palisade.go.hardcoded-credential
const databasePassword = "k9Lw-battery-72"

// ok: palisade.go.hardcoded-credential
var mailPassword = os.Getenv("MAIL_PASSWORD")

// ok: palisade.go.hardcoded-credential
const headerAPIKey = "X-API-Key"

// ok: palisade.go.hardcoded-credential
const oauthAPIKey = "oauth2_api_key"

// ok: palisade.go.hardcoded-credential
const paramAuthToken = "Authorization"

func login() {
	// ruleid: palisade.go.hardcoded-credential
	apiKey := "9f8Qz1mWc0Rt"
	// ok: palisade.go.hardcoded-credential
	apiKey = "changeme-123"
	// ok: palisade.go.hardcoded-credential
	password := "<password>"
	_, _ = apiKey, password
}
