/* The answer to /api/export. */
#include "extensions/explore/api.h"

void api_export(struct api_request *request)
{
    api_refuse(request, 404, "not_found", "not there yet");
}
