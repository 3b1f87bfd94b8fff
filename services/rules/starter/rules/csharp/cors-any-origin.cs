class Startup
{
    void Configure(CorsPolicyBuilder policy)
    {
        // ruleid: palisade.csharp.cors-any-origin
        policy.SetIsOriginAllowed(origin => true).AllowCredentials();
        // ok: palisade.csharp.cors-any-origin
        policy.WithOrigins("https://app.acme.test").AllowCredentials();
        // ok: palisade.csharp.cors-any-origin
        policy.AllowAnyOrigin();
        // ok: palisade.csharp.cors-any-origin
        policy.SetIsOriginAllowed(origin => origin.EndsWith(".acme.test"));
    }
}
