// Package reporting serves reports: how findings change over time, and what the malware firewall saw.
package reporting
