// Package identity serves users, teams and tokens.
package identity
