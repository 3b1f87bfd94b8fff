def read(data)
  # ruleid: palisade.ruby.unsafe-deserialization
  Marshal.load(data)
  # ruleid: palisade.ruby.unsafe-deserialization
  YAML.unsafe_load(data)
  # ok: palisade.ruby.unsafe-deserialization
  YAML.safe_load(data)
  # ok: palisade.ruby.unsafe-deserialization
  Marshal.load(Marshal.dump(data))
  # ok: palisade.ruby.unsafe-deserialization
  JSON.parse(data)
end
