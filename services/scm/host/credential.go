package host

// Credential returns what a host that an application opened is called with: Git over HTTPS takes the same. It is empty
// for hosts of other kinds, whose credential the caller has given itself.
func Credential(h Host) string {
	if opened, ok := h.(*gitHub); ok {
		if transport, ok := opened.client.Client().Transport.(confined); ok {
			return transport.token
		}
	}
	return ""
}
