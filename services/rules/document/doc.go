// Package document reads files of rules: YAML or JSON with a list under the key rules. Parse finds everything that is
// wrong in one pass and names file, line and rule, so that no rule reaches a scanner that the scanner would refuse: one
// bad rule ends its whole scan. What a rule may say is described in docs/rules.md.
package document
