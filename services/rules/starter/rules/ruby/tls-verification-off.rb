def connect(http)
  # ruleid: palisade.ruby.tls-verification-off
  http.verify_mode = OpenSSL::SSL::VERIFY_NONE
  # ruleid: palisade.ruby.tls-verification-off
  Net::HTTP.start("db.acme.test", 443, verify_mode: OpenSSL::SSL::VERIFY_NONE)
  # ok: palisade.ruby.tls-verification-off
  http.verify_mode = OpenSSL::SSL::VERIFY_PEER
  # ok: palisade.ruby.tls-verification-off
  http.ca_file = "/etc/ssl/acme.pem"
  # ok: palisade.ruby.tls-verification-off
  Net::HTTP.start("db.acme.test", 443, use_ssl: true)
end
