package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/config"
)

// storeKeys are the settings for commands on the store; the help of these commands shows only them.
var storeKeys = []string{"data", "database", "key-file", "deployment", "log-format", "log-level"}

// loadStore reads the settings for a command that uses the store without listening. The deployment is empty if the
// settings name none.
func loadStore(cmd *cobra.Command, std streams) (config.Config, error) {
	cfg, err := config.Load(cmd.Flags(), std.environ)
	if err == nil {
		err = cfg.ValidateStore()
	}
	named := cmd.Flags().Changed("deployment") || slices.Contains(std.environ, config.EnvPrefix+"DEPLOYMENT="+cfg.Deployment)
	if !named && cfg.Deployment == config.Default().Deployment {
		cfg.Deployment = "" // nobody named one
	}
	return cfg, err
}

// addStoreFlags adds the flags of a command that works on one deployment of the store.
func addStoreFlags(cmd *cobra.Command) {
	config.AddFlags(cmd.Flags(), storeKeys...)
	flag := cmd.Flags().Lookup("deployment")
	flag.Usage, flag.DefValue = "`slug` of the deployment; default: the only one (env "+config.EnvPrefix+"DEPLOYMENT)", ""
}

// problems splits a configuration error into its sentences.
func problems(err error) []string {
	var config *config.Error
	if errors.As(err, &config) {
		return config.Problems
	}
	return []string{err.Error()}
}
