package services

import "math"

// validateFairness checks what keeps the deployments of a node from each other's way.
func (c Config) validateFairness(p *problemList) {
	if c.RateLimitDeployment < 0 || math.IsNaN(c.RateLimitDeployment) {
		p.add("rate-limit-deployment", "got %v, want 0 (no limit) or more requests per second", c.RateLimitDeployment)
	}
	if c.RateLimitNodes < 1 {
		p.add("rate-limit-nodes", "got %d, want 1 or more: the nodes that share rate-limit-deployment", c.RateLimitNodes)
	}
	if c.Uploads < 0 {
		p.add("uploads", "got %d, want 0 (one for each processor) or more", c.Uploads)
	}
	if c.UploadsPerDeployment < 0 || c.Uploads > 0 && c.UploadsPerDeployment > c.Uploads {
		p.add("uploads-per-deployment", "got %d, want 0 (half of uploads) to the value of uploads", c.UploadsPerDeployment)
	}
	if c.UploadQueue < 0 {
		p.add("upload-queue", "got %d, want 0 (nobody waits) or more", c.UploadQueue)
	}
}
