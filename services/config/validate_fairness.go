package config

import (
	"math"
	"time"
)

// validateFairness checks the limits that keep one deployment from starving the others on a node.
func (c Config) validateFairness(p *problemList) {
	if c.RateLimitDeployment < 0 || math.IsNaN(c.RateLimitDeployment) {
		p.add("rate-limit-deployment", "got %v, want 0 (no limit) or more requests per second", c.RateLimitDeployment)
	}
	if c.RateLimitNodes < 1 {
		p.add("rate-limit-nodes", "got %d, want 1 or more: the nodes that share rate-limit-deployment", c.RateLimitNodes)
	}
	if c.Uploads < 0 {
		p.add("uploads", "got %d, want 0 (one for each processor, at least two) or more", c.Uploads)
	}
	if c.UploadsPerDeployment < 0 || c.Uploads > 0 && c.UploadsPerDeployment > c.Uploads {
		p.add("uploads-per-deployment", "got %d, want 0 (fair sharing) to the value of uploads", c.UploadsPerDeployment)
	}
	if c.UploadQueue < 0 {
		p.add("upload-queue", "got %d, want 0 (no queue) or more", c.UploadQueue)
	}
	if c.WorkflowMaxTasks < 1 || c.WorkflowMaxTasks > 1_000_000 {
		p.add("workflow-max-tasks", "got %d, want 1 to 1000000", c.WorkflowMaxTasks)
	}
	c.validateSpool(p)
	if c.UploadMinRate < 0 || c.UploadMinRate > 1<<30 {
		p.add("upload-min-rate", "got %v, want 0 (no minimum) to 1GiB a second", c.UploadMinRate)
	}
	if c.UploadMinRateWindow < time.Millisecond {
		p.add("upload-min-rate-window", "got %v, want 1ms or more", c.UploadMinRateWindow)
	}
}

// validateSpool checks that the spool has room for the largest allowed report.
func (c Config) validateSpool(p *problemList) {
	for _, quota := range []struct {
		key   string
		value ByteSize
	}{{"spool-quota", c.SpoolQuota}, {"spool-quota-deployment", c.SpoolQuotaDeployment}} {
		if quota.value != 0 && quota.value < c.MaxUpload {
			p.add(quota.key, "got %v, want 0 (automatic) or at least max-upload (%v): one report of that size needs as much", quota.value, c.MaxUpload)
		}
	}
	if node, deployment := c.SpoolQuotas(); deployment > node {
		p.add("spool-quota-deployment", "got %v, want at most spool-quota (%v)", deployment, node)
	}
	if c.DiskReserve < 0 {
		p.add("disk-reserve", "got %v, want 0 (no reserve) or more", c.DiskReserve)
	}
}

// SpoolQuotas are the spool quotas of the node and of each deployment. They replace 0 by its meaning.
func (c Config) SpoolQuotas() (node, deployment ByteSize) {
	node, deployment = c.SpoolQuota, c.SpoolQuotaDeployment
	if node == 0 {
		node = max(8*c.MaxUpload, deployment)
	}
	if deployment == 0 {
		deployment = max(node/2, c.MaxUpload)
	}
	return node, deployment
}
