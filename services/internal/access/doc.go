// Package access knows who calls and what they may do.
//
// An [Authenticator] turns the Authorization header into a [Principal]: the holder of an API token, or a user who shows
// a JSON Web Token of this server's own issuer or of the configured OpenID Connect issuer. [Rules] are the access rules
// that each RPC declares in its proto, read once at start. [ResolveGrant] finds the deployment that a request names
// among those of the principal, and [Authorize] compares rule, principal and grant.
//
// The answers of the contract (specification, section Authentication): 401 for a missing or bad credential, the same
// for unknown, expired and revoked ones; 404 for a deployment that the principal does not belong to, whether it exists
// or not, and for API tokens without the Web API permission; 403 for a wrong scheme or role.
package access
