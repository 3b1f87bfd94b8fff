package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/config"
)

// storeKeys are the settings for commands on the store; the help of these commands shows only them.
var storeKeys = []string{"data", "database", "key-file", "deployment", "log-format", "log-level"}

// loadStore reads the settings for a command that uses the store without listening.
func loadStore(cmd *cobra.Command, std streams) (config.Config, error) {
	cfg, err := config.Load(cmd.Flags(), std.environ)
	if err == nil {
		err = cfg.ValidateStore()
	}
	return cfg, err
}

// problems splits a configuration error into its sentences.
func problems(err error) []string {
	var config *config.Error
	if errors.As(err, &config) {
		return config.Problems
	}
	return []string{err.Error()}
}
