// Package reporting serves reports: findings over time, and the malware firewall's checks.
package reporting
