package host

import "strings"

// Credential returns the credential of a host opened by an application. Git over HTTPS accepts it too. It is empty for
// other hosts: the caller provided their credential.
func Credential(h Host) string {
	if opened, ok := h.(*azure); ok {
		return opened.token
	}
	if opened, ok := h.(*gitHub); ok {
		if transport, ok := opened.client.Client().Transport.(confined); ok {
			return strings.TrimPrefix(transport.authorization, bearer)
		}
	}
	return ""
}
