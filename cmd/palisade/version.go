package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/config"
)

func newVersion(std streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: `  palisade version`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := config.BuildVersion()
			text := "palisade " + b.Version
			if b.Revision != "" {
				text += "\ncommit   " + b.Revision + " " + b.Time
			}
			_, err := fmt.Fprintf(std.out, "%s\ngo       %s\n", text, b.Go)
			return err
		},
	}
}
