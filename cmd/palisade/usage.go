package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is an invalid command line; the error text points to --help.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func isUsageError(err error) bool {
	var usage usageError
	// cobra reports a missing required flag and an unknown command as plain errors.
	return errors.As(err, &usage) || strings.HasPrefix(err.Error(), "required flag(s)") || strings.HasPrefix(err.Error(), "unknown command")
}

// errReported ends a command with an error status after the command has printed the error.
var errReported = errors.New("")

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return usagef("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return usagef("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
}

// oneOf validates a flag with a few allowed words.
func oneOf(flag, got string, allowed ...string) error {
	for _, word := range allowed {
		if got == word {
			return nil
		}
	}
	return usagef("--%s: got %q, want %s", flag, got, strings.Join(allowed, ", "))
}
