/* The answer to /api/explain. */
#include "extensions/explore/api.h"

void api_explain(struct api_request *request)
{
    api_refuse(request, 404, "not_found", "not there yet");
}
