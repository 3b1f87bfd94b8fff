using Newtonsoft.Json;

class Settings
{
    void Configure(JsonSerializerSettings settings)
    {
        // ruleid: palisade.csharp.json-type-names
        settings.TypeNameHandling = TypeNameHandling.All;
        // ok: palisade.csharp.json-type-names
        settings.TypeNameHandling = TypeNameHandling.None;
        // ok: palisade.csharp.json-type-names
        settings.NullValueHandling = NullValueHandling.Ignore;
    }

    void ConfigureBound(JsonSerializerSettings settings, ISerializationBinder binder)
    {
        settings.SerializationBinder = binder;
        // ok: palisade.csharp.json-type-names
        settings.TypeNameHandling = TypeNameHandling.Auto;
    }
}
