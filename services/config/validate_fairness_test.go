package config

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
		"spool-quota: got 1GiB, want 0 (automatic) or at least max-upload (2GiB)": func(c *Config) { c.MaxUpload, c.SpoolQuota = 2<<30, 1<<30 },
		"spool-quota-deployment: got 1MiB, want 0 (automatic) or at least":        func(c *Config) { c.SpoolQuotaDeployment = 1 << 20 },
		"spool-quota-deployment: got 4GiB, want at most spool-quota (3GiB)":       func(c *Config) { c.SpoolQuota, c.SpoolQuotaDeployment = 3<<30, 4<<30 },
		"disk-reserve: got -1, want 0":                                            func(c *Config) { c.DiskReserve = -1 },
		"upload-min-rate: got 2GiB, want 0":                                       func(c *Config) { c.UploadMinRate = 2 << 30 },
		"workflow-max-tasks: got 0, want 1 to 1000000":                            func(c *Config) { c.WorkflowMaxTasks = 0 },
		"workflow-max-tasks: got 1000001, want":                                   func(c *Config) { c.WorkflowMaxTasks = 1_000_001 },
		"upload-min-rate-window: got 0s, want 1ms or more":                        func(c *Config) { c.UploadMinRateWindow = 0 },
	} {
		cfg := Default()
		change(&cfg)
		err := cfg.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
