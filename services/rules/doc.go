// Package rules serves the rules that a deployment's scanners run: the service groups rules and scanner rules.
package rules
