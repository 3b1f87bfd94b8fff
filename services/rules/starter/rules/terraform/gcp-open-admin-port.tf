resource "google_compute_firewall" "web" {
  network       = google_compute_network.main.name
  source_ranges = ["0.0.0.0/0"]
  allow {
    protocol = "tcp"
    # ruleid: palisade.terraform.gcp-open-admin-port
    ports = ["22", "443"]
  }
  allow {
    protocol = "tcp"
    # ok: palisade.terraform.gcp-open-admin-port
    ports = ["443"]
  }
}

resource "google_compute_firewall" "inside" {
  network       = google_compute_network.main.name
  source_ranges = ["10.0.0.0/8"]
  allow {
    protocol = "tcp"
    # ok: palisade.terraform.gcp-open-admin-port
    ports = ["22"]
    # ok: palisade.terraform.gcp-open-admin-port
    priority = 1000
  }
}

resource "google_compute_firewall" "ranges" {
  network       = google_compute_network.main.name
  source_ranges = ["0.0.0.0/0"]
  allow {
    protocol = "tcp"
    # ruleid: palisade.terraform.gcp-open-admin-port
    ports = ["80", "20-25"]
  }
  allow {
    protocol = "tcp"
    # ruleid: palisade.terraform.gcp-open-admin-port
    ports = ["0-65535"]
  }
  allow {
    protocol = "tcp"
    # ok: palisade.terraform.gcp-open-admin-port
    ports = ["8000-8999"]
  }
  allow {
    protocol = "tcp"
    # ok: palisade.terraform.gcp-open-admin-port
    ports = ["20-21", "23-79"]
  }
}
