// Package identity serves who may use a deployment: the service groups users, teams and tokens.
package identity
