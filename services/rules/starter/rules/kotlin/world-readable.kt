fun files(context: Context) {
    // ruleid: palisade.kotlin.world-readable
    context.openFileOutput("orders.json", Context.MODE_WORLD_READABLE)
    // ok: palisade.kotlin.world-readable
    context.openFileOutput("orders.json", Context.MODE_PRIVATE)
    // ok: palisade.kotlin.world-readable
    context.getSharedPreferences("orders", Context.MODE_PRIVATE)
    // ok: palisade.kotlin.world-readable
    context.openFileOutput("orders.json", Context.MODE_APPEND)
}
