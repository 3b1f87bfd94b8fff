package services

import (
	"math"
	"strings"
	"testing"
)

func TestFairnessIsValidated(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"":                                      func(c *Config) { c.Uploads, c.UploadsPerDeployment, c.UploadQueue = 4, 4, 0 },
		"rate-limit-deployment: got -1":         func(c *Config) { c.RateLimitDeployment = -1 },
		"rate-limit-deployment: got NaN":        func(c *Config) { c.RateLimitDeployment = math.NaN() },
		"rate-limit-nodes: got 0, want 1":       func(c *Config) { c.RateLimitNodes = 0 },
		"uploads: got -1, want 0":               func(c *Config) { c.Uploads = -1 },
		"uploads-per-deployment: got 5, want 0": func(c *Config) { c.Uploads, c.UploadsPerDeployment = 4, 5 },
		"upload-queue: got -1, want 0":          func(c *Config) { c.UploadQueue = -1 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		err := cfg.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
