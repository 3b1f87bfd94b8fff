using System.Runtime.Serialization.Formatters.Binary;

class Objects
{
    void Read(Stream stream)
    {
        // ruleid: palisade.csharp.unsafe-deserialization
        new BinaryFormatter().Deserialize(stream);
        // ok: palisade.csharp.unsafe-deserialization
        new DataContractSerializer(typeof(Order)).ReadObject(stream);
        // ok: palisade.csharp.unsafe-deserialization
        JsonSerializer.Deserialize<Order>(stream);
        // ok: palisade.csharp.unsafe-deserialization
        new BinaryReader(stream).ReadInt32();
    }
}
