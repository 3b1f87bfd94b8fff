// Package access authenticates and authorizes callers.
//
// An [Authenticator] turns the Authorization header into a [Principal]: the holder of an API token, or a user with a
// JSON Web Token of this server's own issuer or of the configured OpenID Connect issuer. [Rules] are the access rules
// that each RPC declares in its proto; they are read once at start. [ResolveGrant] finds the deployment that a request
// names among the principal's deployments. [Authorize] compares rule, principal and grant.
//
// The contract (specification, section Authentication) requires these answers:
//
//   - 401 for a missing or bad credential, with the same text for unknown, expired and revoked ones.
//   - 404 for a deployment that the principal does not belong to, whether it exists or not, and for API tokens
//     without the Web API permission.
//   - 403 for a wrong scheme or role.
package access
