package access

import "context"

type sessionKey struct{}

// WithSession returns a context that carries the secret of a session's cookie. Only the edge of the HTTP port calls it,
// so no caller of the gRPC port can act with a cookie.
func WithSession(ctx context.Context, secret string) context.Context {
	return context.WithValue(ctx, sessionKey{}, secret)
}

// SessionFrom returns the secret of the session that sent the request, or "".
func SessionFrom(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	secret, _ := ctx.Value(sessionKey{}).(string)
	return secret
}
